// Before anything is drawn, so that a dark page does not flash white.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch { /* storage may be forbidden: then the system's own theme is used */ }
