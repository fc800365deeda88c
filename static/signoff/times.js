// Times come as UTC; here they become the reader's own, with UTC on hover. Ages stay fresh.

const near = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const far = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const age = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const steps = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];

function ageOf(at) {
  const seconds = (at - Date.now()) / 1000;
  const [unit, size] = steps.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return age.format(Math.trunc(seconds / size), unit);
}

export function tellLocalTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const thisYear = at.getFullYear() === new Date().getFullYear();
    element.textContent = "ago" in element.dataset ? ageOf(at) : (thisYear ? near : far).format(at);
    element.title = `${exact.format(at)} (${at.toISOString().replace("T", " ").slice(0, 19)} UTC)`;
  }
}
