// The form posts the choice and the server keeps it; here the page follows at once.

export function switchThemeAtOnce() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".theme button");
    if (!button) return;
    document.documentElement.dataset.bsTheme = button.value;
    for (const other of document.querySelectorAll(".theme button")) {
      other.setAttribute("aria-pressed", String(other.value === button.value));
    }
  });
}
