import type { Messages } from '../types';

export const servers: Messages['servers'] = {
  title: 'Andere Server',
  about:
    'Server, die das Protokoll von OpenAI sprechen: ein anderes Inglenook, vLLM, SGLang, llama.cpp, Ollama. Ihre Modelle stehen in derselben Liste wie deine. Was du ihnen schreibst, verlässt diesen Computer, außer sie laufen darauf.',
  add: 'Server hinzufügen …',
  name: 'Name',
  name_hint: 'Arbeitsrechner',
  address: 'Adresse',
  key: 'Schlüssel, falls er einen will',
  key_hint: 'im Schlüsselbund oder verschlüsselt in einer Datei',
  key_kept: 'Schlüssel in einer verschlüsselten Datei',
  key_keychain: 'Schlüssel im Schlüsselbund des Systems',
  key_environment: 'Schlüssel in {variable}',
  asking: 'Wird gefragt',
  test: 'Noch einmal fragen',
  switch_off: 'Ausschalten',
  switch_on: 'Einschalten',
  off: 'aus',
  up: 'antwortet',
  down: 'antwortet nicht',
  leaves: 'verlässt diesen Computer',
  leaves_about: 'Was er gefragt wird, verlässt diesen Computer',
  readable: 'unterwegs lesbar',
  readable_about: 'Die Adresse beginnt mit http, nicht mit https',
};
