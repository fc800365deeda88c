// The way down to the decision is shown only while the decision is out of sight.

export function watchTheDecision() {
  const way = document.querySelector(".to-decision");
  const decision = document.getElementById("decision");
  if (!way || !decision) return;
  new IntersectionObserver(([seen]) => {
    way.hidden = seen.isIntersecting;
  }).observe(decision);
}
