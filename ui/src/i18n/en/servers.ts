/** Other servers that answer. */
export const servers = {
  title: 'Other servers',
  about:
    'Servers with an OpenAI-compatible API: another Inglenook, vLLM, SGLang, llama.cpp or Ollama. Their models appear in the same list as yours. Unless such a server runs on this computer, your messages to it leave this computer.',
  add: 'Add server…',
  name: 'Name',
  name_hint: 'Workstation',
  address: 'Address',
  key: 'API key (if required)',
  key_hint: 'stored in the keychain or an encrypted file',
  key_kept: 'API key in encrypted file',
  key_keychain: 'API key in system keychain',
  key_environment: 'API key from {variable}',
  asking: 'Connecting…',
  test: 'Test connection',
  switch_off: 'Turn off',
  switch_on: 'Turn on',
  off: 'Off',
  online: 'Online',
  offline: 'Offline',
  leaves: 'leaves this computer',
  leaves_about: 'Messages to this server leave this computer',
  unencrypted: 'Not encrypted (HTTP)',
  unencrypted_about:
    'The address uses http instead of https, so others on the network can read your messages',
} as const;
