/** Questions over the page: sure? what is the token? which keys are there? */

import { ask } from "./link.js";
import { byId, say, setText } from "./dom.js";

/** Ask for a yes; Escape and the other button are a no. */
export function confirmed(title, text) {
  const dialog = byId("confirm");
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  dialog.returnValue = "no";
  dialog.showModal();
  byId("confirm-no").focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** The token in the address, taken out of it so that it is in no history and no screenshot. */
export function tokenInAddress() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found !== null) history.replaceState(null, "", location.pathname);
  return found;
}

/** Trade a token for a cookie that scripts cannot read. */
export const signIn = (token) => ask("POST", "/api/session", { token });

/** Ask for a token until it is right; then call `opened`. */
export function prepareToken(opened) {
  const dialog = byId("token");
  const field = byId("token-input");
  dialog.addEventListener("cancel", (event) => event.preventDefault()); // nothing can be seen without
  byId("token-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await signIn(field.value.trim());
      field.value = "";
      say(byId("token-error"), "");
      dialog.close();
      opened();
    } catch (error) {
      say(byId("token-error"), error.status === 401 ? "That is not the token." : error.message, true);
      field.select();
    }
  });
  return () => {
    if (!dialog.open) dialog.showModal();
  };
}

/** One-key shortcuts: pressed in a field, or with them switched off, they are nothing. */
export function prepareShortcuts(views, cancel) {
  const help = byId("help");
  byId("help-open").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") cancel();
    if (!byId("shortcuts").checked || event.target.closest("input, select, textarea")) return;
    const view = views[Number(event.key) - 1];
    if (event.key === "?") help.showModal();
    else if (view) location.hash = view;
  });
}
