// Grants in a snapshot, one line per group. Who may have a project's tasks is derived again.

import type { GroupId } from "../../ids.ts";
import type { SwarmState } from "../../state/state.ts";
import { type Fields, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { readGrantFields } from "./settings.ts";

export function* grantRows({ grants }: SwarmState): Generator<Row> {
  for (const [group, grant] of grants.byGroup) yield ["grant", { group, grant }];
}

export function readGrant(state: SwarmState, fields: Fields): void {
  const group = fields.text<GroupId>("group");
  if (state.grants.of(group) !== undefined) refuse(`grant of group ${group} stands twice`);
  state.grants = state.grants.with(group, readGrantFields(fields));
}
