// Checks the rules of this repository: imports, purity, form of files. rules-can-fail.test.ts proves that each rule
// can fail.

import { expect, test } from "vitest";
import { formRules } from "./form-rules.ts";
import { importRules } from "./import-rules.ts";
import { namingRules } from "./naming-rules.ts";
import { proseRules } from "./prose-rules.ts";
import { purityRules } from "./purity-rules.ts";
import { repositoryRules } from "./repository-rules.ts";
import { explain } from "./rule.ts";
import { readTree } from "./source-tree.ts";

const tree = readTree();

test("the tree was read", () => {
  const paths = tree.files.map((file) => file.path);
  expect(paths).toEqual(expect.arrayContaining(["package.json", "src/limits.ts", "package-lock.json"]));
});

const rules = [
  ...importRules,
  ...purityRules,
  ...formRules,
  ...namingRules,
  ...repositoryRules,
  ...proseRules,
];
for (const rule of rules) {
  test(rule.name, () => {
    const violations = rule.check(tree);
    expect(violations.length, explain(rule, violations)).toBe(0);
  });
}
