// Says how many rows are ticked, beside the act that they are ticked for.

export function countTicks(root) {
  for (const form of root.querySelectorAll("form[data-ticks]")) {
    const told = form.querySelector("[data-ticked]");
    if (!told || form.dataset.ticks === "counted") continue;
    form.dataset.ticks = "counted";
    const count = () => {
      const number = form.querySelectorAll("input[name=positions]:checked").length;
      told.textContent = number ? ` (${number})` : "";
    };
    form.addEventListener("change", count);
    count();
  }
}
