OPEN = {"library": "9 to 17", "canteen": "11 to 14", "gym": "7 to 22", "pool": "10 to 19"}


def opening_hours(place: str) -> str:
    """When a place is open."""
    return OPEN.get(place, "Nothing was found.")
