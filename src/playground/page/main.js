// Shows that the server answers.

const token = document.querySelector('meta[name="clew-token"]').content;
const state = await (await fetch('/api/state', { headers: { 'X-Clew-Token': token } })).json();
document.getElementById('chat').textContent = state.guilds.map((guild) => guild.name).join(', ');
