(() => {
  const tip = document.getElementById("tip");
  const show = (text, x, y) => {
    tip.textContent = text; tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18) + "px";
  };
  const hide = () => { tip.style.display = "none"; document.querySelectorAll(".cursor").forEach(c => c.style.display = "none"); };
  const number = v => v === null ? "–" : String(Math.round(v * 100) / 100).replace("-", "−");
  const read = (plot, x, y) => {
    const data = plot.data ??= JSON.parse(plot.dataset.plot), box = plot.getBoundingClientRect();
    const first = data.x[0], last = data.x[data.x.length - 1];
    const at = first + (x - box.left) / box.width * (last - first);
    let best = 0;
    data.x.forEach((step, i) => { if (Math.abs(step - at) < Math.abs(data.x[best] - at)) best = i; });
    const cursor = plot.querySelector(".cursor");
    cursor.style.display = "block"; cursor.style.left = 100 * (data.x[best] - first) / (last - first) + "%";
    const lines = data.s.map(s => s.n + "  " + number(s.v[best]));
    show(["step " + data.x[best], ...lines].join("\n"), x, y);
  };
  const point = event => {
    const plot = event.target.closest(".plot"), token = event.target.closest("[data-t]");
    if (plot || token) { hide(); plot ? read(plot, event.clientX, event.clientY) : show(token.dataset.t, event.clientX, event.clientY); }
    else hide();
  };
  addEventListener("pointermove", point);
  addEventListener("pointerdown", point);
  addEventListener("scroll", hide, { passive: true });
})();
