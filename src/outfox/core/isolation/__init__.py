"""Code of the user's, run where it can be stopped: in worker processes, each call with a deadline.

    signal, tool ─submit─▶ Workers ─request─▶ worker process ─answer─▶ result, or what went wrong
                              └──fork──▶ template process: has loaded the user's code

`own_code.py` finds the user's code in either process, `workers.py` is the run's side, `template.py`
the other one. A call gets copies of its arguments, so that nothing it changes reaches the run.
"""
