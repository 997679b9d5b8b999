// The JSON Schema of waggle.config.json, as editors read it. Written to waggle.schema.json by
// scripts/config-schema.ts; a test fails when that file is stale.

import { z } from "zod";
import { configSchema } from "./schema.ts";

/** What waggle.schema.json must hold. */
export function configJsonSchema(): object {
  return z.toJSONSchema(configSchema, { io: "input", target: "draft-7" });
}
