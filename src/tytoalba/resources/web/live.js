"use strict";
const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/live`);
socket.onmessage = (event) => {
  const told = JSON.parse(event.data);
  if (told.type === "update")
    document.getElementById("now").textContent =
      told.tracks.map((one) => `${Math.round(one.azimuth)}°`).join(", ") || "nobody";
};
