// Writes waggle.schema.json from src/config/schema.ts: tsx scripts/config-schema.ts, then npm run format. A test
// says when the file is stale.

import { writeFileSync } from "node:fs";
import { configJsonSchema } from "../src/config/json-schema.ts";

const file = new URL("../waggle.schema.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`);
