// The JSON Schema of waggle.config.json, for editors. scripts/config-schema.ts writes waggle.schema.json; a test
// fails if the file is stale.

import * as z from "zod";
import { configSchema } from "./schema.ts";

/** Content of waggle.schema.json. */
export function configJsonSchema(): object {
  return z.toJSONSchema(configSchema, { io: "input", target: "draft-7" });
}
