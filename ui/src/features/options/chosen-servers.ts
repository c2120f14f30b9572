/** Which tool servers a chat uses. */

/** Ids. `own`: the chat's choice; null: all servers, if the settings offer tools. */
export function chosenServers(
  servers: readonly { readonly id: string }[],
  own: readonly string[] | null,
  isOffered: boolean,
): string[] {
  const ids = servers.map((it) => it.id);
  if (own !== null) return ids.filter((id) => own.includes(id));
  return isOffered ? ids : [];
}
