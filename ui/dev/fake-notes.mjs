// Notes of the stand-in.

const notes = [
  { id: 'n1', text: 'I heat with birch and have a dog called Ash.', source: 'c1', created_ms: 1_700_000_000_000, updated_ms: 1_700_000_000_000 },
  { id: 'n2', text: 'Answer with metric units.', source: null, created_ms: 1_700_000_100_000, updated_ms: 1_700_000_100_000 },
];

/** What of a prompt the notes are. */
export const memoryShare = (isOn) =>
  isOn && notes.length > 0 ? { memory: { tokens: notes.length * 14, text: `The user asked you to remember:\n${notes.map((it) => `- ${it.text}`).join('\n')}` } } : {};

export const noteCalls = (publish, id) => {
  const told = () => publish({ type: 'notes_changed', notes: [...notes] });
  return {
    notes_list: () => notes,
    note_save: (a) => {
      const now = Date.now();
      let note = notes.find((it) => it.id === a.id);
      if (note) Object.assign(note, { text: a.text.trim(), updated_ms: now });
      else notes.push((note = { id: id(), text: a.text.trim(), source: a.source ?? null, created_ms: now, updated_ms: now }));
      told();
      return note;
    },
    note_remove: (a) => { notes.splice(notes.findIndex((it) => it.id === a.id), 1); told(); return null; },
  };
};
