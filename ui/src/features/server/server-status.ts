/** Describes the state of the local server. */
import type { ServerState } from '../../backend/bindings';
import { t } from '../../i18n';

/** Ports without thousands separators. */
const ports = (list: readonly number[]): string => list.join(', ');

export function describeServer(server: ServerState): string {
  switch (server.state) {
    case 'off':
      return t('settings.server_off');
    case 'running':
      return t('settings.server_running', { port: ports(server.ports) });
    case 'failed':
      return t('settings.server_failed', { port: ports([server.port]) });
  }
}
