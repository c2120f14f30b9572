import { describe, expect, it } from 'vitest';
import type { RemoteInfo } from '../backend/bindings';
import { answerSource, invitation } from './answer-source';

const remote = (over: Partial<RemoteInfo> = {}): { remote: RemoteInfo } => ({
  remote: {
    endpoint: 'Workstation',
    hosts: ['192.168.1.20:8642'],
    leaves_machine: true,
    is_readable: false,
    note: '',
    ...over,
  },
});

describe('where answers come from', () => {
  it('is nowhere else for a model that runs here', () => {
    expect(answerSource({ remote: null })).toBeNull();
    expect(answerSource({})).toBeNull();
    expect(invitation({ remote: null })).toContain('stay here');
  });

  it.each([
    [
      remote(),
      'Your messages leave this computer and go to Workstation (192.168.1.20:8642).',
      true,
    ],
    [
      remote({ is_readable: true }),
      'Your messages leave this computer and go to Workstation (192.168.1.20:8642). ' +
        'The connection is not encrypted (HTTP).',
      true,
    ],
    [
      remote({ endpoint: 'lab.example.org', hosts: ['lab.example.org'] }),
      'Your messages leave this computer and go to lab.example.org.',
      true,
    ],
    [
      remote({ endpoint: 'Ollama', hosts: ['127.0.0.1:11434'], leaves_machine: false }),
      'Answers come from another program on this computer: Ollama (127.0.0.1:11434).',
      false,
    ],
  ])('%j', (model, sentence, leaves) => {
    expect(answerSource(model)).toMatchObject({ sentence, leaves });
    expect(invitation(model)).toBe(`Ask anything. ${sentence}`);
  });

  it.each([remote(), remote({ leaves_machine: false }), undefined])(
    'claims no more than is known: %j',
    (model) => {
      expect(invitation(model)).not.toContain('stay here');
    },
  );
});
