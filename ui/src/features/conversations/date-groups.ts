/** Groups conversations by the day of their last change, and arranges the sidebar. */
import type { ConversationSummary, Folder } from '../../backend/bindings';
import { buildFolderTree, type FolderNode } from './folder-tree';

export type DateGroupName = 'today' | 'yesterday' | 'week' | 'month' | 'older';

export interface DateGroup {
  readonly name: DateGroupName;
  readonly conversations: ConversationSummary[];
}

const NAMES: readonly DateGroupName[] = ['today', 'yesterday', 'week', 'month', 'older'];

/** Groups by local calendar day, newest first within each group, without empty groups. */
export function groupByDate(list: readonly ConversationSummary[], nowMs: number): DateGroup[] {
  const starts = groupStarts(nowMs);
  const groups = new Map<DateGroupName, ConversationSummary[]>();
  for (const conversation of [...list].sort((a, b) => b.activity - a.activity)) {
    const at = starts.findIndex((start) => conversation.updated_ms >= start);
    const name = NAMES[at] ?? 'older';
    const group = groups.get(name);
    if (group) group.push(conversation);
    else groups.set(name, [conversation]);
  }
  return NAMES.flatMap((name) => {
    const conversations = groups.get(name);
    return conversations ? [{ name, conversations }] : [];
  });
}

export interface SidebarLayout {
  readonly pinned: readonly ConversationSummary[];
  readonly folders: readonly FolderNode[];
  /** Conversations by folder id. */
  readonly inside: ReadonlyMap<string, readonly ConversationSummary[]>;
  readonly groups: readonly DateGroup[];
}

/** Puts each conversation in exactly one place: pinned, in a folder, or by date. */
export function arrangeSidebar(
  list: readonly ConversationSummary[],
  folders: readonly Folder[],
  nowMs: number,
): SidebarLayout {
  const sorted = [...list].sort((a, b) => b.activity - a.activity);
  const known = new Set(folders.map((folder) => folder.id));
  const loose = sorted.filter((it) => !it.pinned);
  const inside = new Map(
    folders.map(({ id }) => [id, loose.filter((it) => it.folder === id)] as const),
  );
  return {
    pinned: sorted.filter((it) => it.pinned),
    folders: buildFolderTree(folders),
    inside,
    groups: groupByDate(
      loose.filter((it) => it.folder === null || !known.has(it.folder)),
      nowMs,
    ),
  };
}

/** Start time of each group, in the order of `NAMES`. Weeks start on Monday. */
function groupStarts(nowMs: number): number[] {
  const now = new Date(nowMs);
  const day = (offset: number) =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + offset).getTime();
  const sinceMonday = (now.getDay() + 6) % 7;
  return [
    day(0),
    day(-1),
    day(-sinceMonday),
    new Date(now.getFullYear(), now.getMonth(), 1).getTime(),
    -Infinity,
  ];
}
