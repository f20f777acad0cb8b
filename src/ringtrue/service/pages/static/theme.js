// Runs before the first line is drawn, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem("ringtrue-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* without storage the system's theme holds */ }
