// j and k step through letters; a slash goes to the filter. Ignored while somebody types, and with any modifier.

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (event.key === "/") {
      const field = document.querySelector(".filter input");
      if (field) {
        event.preventDefault();
        field.focus();
      }
    } else if (event.key === "j" || event.key === "k") {
      document.querySelector(`[data-key="${event.key}"]`)?.click();
    }
  });
}
