// After a swap the reader's place is kept: a refusal is read first, a new letter takes the focus, though never out of
// a field that somebody went on to type in. A dead line is said.

const isTyping = () => document.activeElement?.matches("input, textarea, select") ?? false;

export function keepThePlace() {
  document.body.addEventListener("htmx:afterSettle", (event) => {
    const now = document.getElementById(event.detail.target?.id ?? "");
    if (!now) return;
    const said = now.querySelector("[data-focus], .notice-bad[role=alert]");
    if (said) {
      said.setAttribute("tabindex", "-1");
      said.focus();
    } else if (!isTyping() && (now.id === "letter" || now.id.startsWith("case-"))) {
      now.focus({ preventScroll: true });
    }
  });
}

export function tellTrouble() {
  const trouble = document.getElementById("trouble");
  const say = (silent) => () => {
    trouble.hidden = silent;
  };
  document.body.addEventListener("htmx:sendError", say(false));
  document.body.addEventListener("htmx:timeout", say(false));
  document.body.addEventListener("htmx:afterOnLoad", say(true));
}
