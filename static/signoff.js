// Everything here makes a page nicer; nothing here is needed for it to work.

import { watchTheDecision } from "./signoff/decision.js";
import { letNumbersBreathe } from "./signoff/numbers.js";
import { tellLocalTimes } from "./signoff/times.js";
import { countTicks } from "./signoff/ticks.js";
import { listenToKeys } from "./signoff/keys.js";
import { switchThemeAtOnce } from "./signoff/theme.js";
import { keepThePlace, tellTrouble } from "./signoff/swaps.js";

function dress(root) {
  tellLocalTimes(root);
  letNumbersBreathe(root);
  countTicks(root);
}

dress(document);
switchThemeAtOnce();
listenToKeys();
keepThePlace();
tellTrouble();
watchTheDecision();
document.body.addEventListener("htmx:load", (event) => dress(event.detail.elt));
setInterval(() => tellLocalTimes(document), 60_000);
