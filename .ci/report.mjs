// Reads the report of a vitest run. Prints the number of passed tests, the number of failed tests and the files with
// a failure, and appends the names and messages of failed tests to a file.
//
// node .ci/report.mjs REPORT NAMES

import { appendFileSync, existsSync, readFileSync } from "node:fs";

const [report, names] = process.argv.slice(2);
if (!existsSync(report)) {
  process.stdout.write("0 1\n");
  process.exit();
}
const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
const failed = testResults.filter(({ status }) => status === "failed");
// A file that could not be loaded has no tests to count.
const unloaded = failed.filter(({ assertionResults }) => assertionResults.length === 0);
for (const { name } of unloaded) appendFileSync(names, `${name} could not be loaded\n`);
for (const { name, assertionResults } of failed)
  for (const {
    status,
    fullName,
    failureMessages: [why = ""],
  } of assertionResults)
    if (status === "failed") appendFileSync(names, `${name}: ${fullName}\n    ${why.split("\n")[0]}\n`);
const figures = [numPassedTests, numFailedTests + unloaded.length, ...failed.map(({ name }) => name)];
process.stdout.write(`${figures.join(" ")}\n`);
