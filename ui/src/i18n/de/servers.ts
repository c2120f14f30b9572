import type { Messages } from '../types';

export const servers: Messages['servers'] = {
  title: 'Andere Server',
  about:
    'Server mit OpenAI-kompatibler API: ein anderes Inglenook, vLLM, SGLang, llama.cpp oder Ollama. Ihre Modelle erscheinen in derselben Liste wie deine. Läuft ein Server nicht auf diesem Computer, verlassen deine Nachrichten an ihn diesen Computer.',
  add: 'Server hinzufügen…',
  name: 'Name',
  name_hint: 'Arbeitsrechner',
  address: 'Adresse',
  key: 'API-Schlüssel (falls nötig)',
  key_hint: 'wird im Schlüsselbund oder verschlüsselt in einer Datei gespeichert',
  model: 'Modell (nur falls der Server keine auflistet)',
  model_hint: 'sein Name, etwa gpt-oss-120b',
  models_enter: 'Modelle eingeben…',
  models_label: 'Namen der Modelle, mit Komma getrennt',
  key_kept: 'API-Schlüssel in verschlüsselter Datei',
  key_keychain: 'API-Schlüssel im Schlüsselbund',
  key_environment: 'API-Schlüssel aus {variable}',
  asking: 'Verbindung wird aufgebaut…',
  test: 'Verbindung testen',
  switch_off: 'Ausschalten',
  switch_on: 'Einschalten',
  off: 'Aus',
  online: 'Online',
  offline: 'Offline',
  leaves: 'verlässt diesen Computer',
  leaves_about: 'Nachrichten an diesen Server verlassen diesen Computer',
  unencrypted: 'Nicht verschlüsselt (HTTP)',
  unencrypted_about:
    'Die Adresse nutzt http statt https. Andere im Netzwerk können deine Nachrichten mitlesen',
};
