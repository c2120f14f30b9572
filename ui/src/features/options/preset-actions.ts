/** Menu entries of the chosen preset. */
import type { MenuItem } from '../../shared/Menu.svelte';
import { t } from '../../i18n';

interface PresetWork {
  exportFile(): void;
  rename(): void;
  remove(): void;
}

export const presetActions = (work: PresetWork): MenuItem[] => [
  {
    icon: 'download',
    label: t('common.export'),
    testid: 'preset-export',
    run: () => work.exportFile(),
  },
  { icon: 'edit', label: t('common.rename'), testid: 'preset-rename', run: () => work.rename() },
  {
    icon: 'trash',
    label: t('common.delete'),
    testid: 'preset-delete',
    bad: true,
    run: () => work.remove(),
  },
];
