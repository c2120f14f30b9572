// Writes the first document that the page sends, and tells the page when Esc is pressed in it.
addEventListener('message', function show(event) {
  if (event.source !== parent || typeof event.data !== 'string') return;
  removeEventListener('message', show);
  document.open();
  document.write(event.data);
  document.close();
  addEventListener('keydown', function (key) {
    if (key.key === 'Escape') parent.postMessage('close', '*');
  });
});
parent.postMessage('ready', '*');
