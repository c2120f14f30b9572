/** What is to be said of the local server. */
import type { ServerState } from '../../backend/bindings';
import { t } from '../../i18n';

/** As they are typed: no groups of thousands. */
const ports = (list: readonly number[]): string => list.join(', ');

export function serverSaid(server: ServerState): string {
  switch (server.state) {
    case 'off':
      return t('settings.server_off');
    case 'running':
      return t('settings.server_running', { port: ports(server.ports) });
    case 'failed':
      return t('settings.server_failed', { port: ports([server.port]) });
  }
}
