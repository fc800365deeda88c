// Figures keep plain digits in the page, so that scripts can read them; the commas people want are drawn between groups.

export function letNumbersBreathe(root) {
  for (const element of root.querySelectorAll("[data-count]")) {
    const digits = element.textContent.trim();
    if (!/^\d{4,}$/.test(digits)) continue;
    const groups = digits.match(/\d{1,3}(?=(\d{3})*$)/g);
    element.replaceChildren(
      ...groups.map((group, index) => {
        const part = document.createElement("span");
        part.textContent = group;
        if (index) part.className = "group";
        return part;
      }),
    );
  }
}
