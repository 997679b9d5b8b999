// The settings of `waggle.config.json`. waggle.schema.json is generated from here (scripts/config-schema.ts), so that
// editors complete and check the file. Not here: other sources of settings (settings.ts).

import * as z from "zod";
import { isInboxPrefix, NAME_PATTERN, SUBJECT_TOKEN_PATTERN } from "../ids.ts";
import { limits } from "../limits.ts";
import { durationIn } from "./duration.ts";
import { retentionIn } from "./retention.ts";

/** A text; `sentence` is its error message. */
const text = (sentence: string) => z.string(sentence).min(1, sentence);
const subjectTokenSentence = "must be 1–64 characters of A–Z a–z 0–9 _ -";
const subjectToken = z.string(subjectTokenSentence).regex(SUBJECT_TOKEN_PATTERN, subjectTokenSentence);

export const logLevels = ["silent", "error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

const userSentence = "must be 1–128 printable characters without spaces";

function isLeaderTimeout(said: string): boolean {
  const ms = durationIn(said) ?? 0;
  return ms >= limits.leaderTimeoutMsMin && ms <= limits.leaderTimeoutMsMax;
}
const leaderTimeoutSentence = `must be a duration from ${limits.leaderTimeoutMsMin} ms to ${limits.leaderTimeoutMsMax / 1000} s, like 1s`;

/** Numbers of replicas that JetStream accepts. */
const replicasChoices: ReadonlySet<string> = new Set(["1", "2", "3", "4", "5"]);
const replicasSentence = "must be a whole number from 1 to 5: the number of servers that store the journal";
const retainSentence = "must be one duration, one size, or both separated by a comma: 7d, 10GiB, 7d,10GiB";

/** @param of content of the file, for the error */
const path = (of: string, example: string) => text(`must be the path of ${of}, like ${example}`).optional();

export const tlsSchema = z.strictObject({
  ca: path("a certificate", "./ca.pem").describe("Path of the certificate authority's certificate."),
  cert: path("a certificate", "./client.pem").describe("Path of the client's certificate."),
  key: path("a key", "./client.key").describe("Path of the client's key."),
});

export const credentialsSchema = z.strictObject({
  creds: path("a .creds file", "./acme.creds").describe("Path of a .creds file."),
  nkey: path("a file with an nkey seed", "./acme.nk").describe("Path of a file with an nkey seed."),
  tls: tlsSchema.optional(),
});

const inboxPrefixSentence =
  "must begin with _INBOX and a word of A–Z a–z 0–9 _ -, such as _INBOX_ann: coordinators answer to no other prefix";

/** Unknown names are refused: a misspelt setting must not pass as set. */
export const configSchema = z
  .strictObject({
    $schema: z.string().optional().describe("Where editors find the schema of this file."),
    nats: text("must be the URL of a NATS server, or several separated by commas, like nats://127.0.0.1:4222")
      .optional()
      .describe(
        "URL of the NATS server, or several separated by commas. Default: the broker of the data folder.",
      ),
    natsContext: text("must be the name of a context of the nats tool, like production")
      .optional()
      .describe("Name of a context of the nats command-line tool."),
    inboxPrefix: z
      .string(inboxPrefixSentence)
      .refine(isInboxPrefix, inboxPrefixSentence)
      .optional()
      .describe(
        "Prefix of the subjects on which answers arrive. Required if the server permits only this prefix. Default: _INBOX.",
      ),
    credentials: credentialsSchema.optional().describe("Paths are relative to this file."),
    swarm: subjectToken.optional().describe("Name of the swarm. Default: default."),
    project: subjectToken.optional().describe("Project of submitted tasks. Default: default."),
    projectOnly: z
      .boolean("must be true or false")
      .optional()
      .describe(
        "Whether questions without --project are about `project` alone: for a user who may not ask about the whole swarm. Default: false.",
      ),
    queriesOnly: z
      .boolean("must be true or false")
      .optional()
      .describe(
        "Whether this user may ask coordinators, but not read the journal's streams: `verify`, `export` and others then say so at once. Default: false.",
      ),
    user: z
      .string(userSentence)
      .regex(NAME_PATTERN, userSentence)
      .optional()
      .describe("User who submits tasks. Default: the name of the account."),
    dataFolder: text("must be the path of a folder, like .waggle")
      .optional()
      .describe("Folder of the local broker and its journal, relative to this file. Default: .waggle."),
    name: subjectToken
      .optional()
      .describe(
        "Beginning of the id of the coordinator that up runs; four random characters follow. Default: the host's name.",
      ),
    leaderTimeout: z
      .string(leaderTimeoutSentence)
      .refine(isLeaderTimeout, leaderTimeoutSentence)
      .optional()
      .describe(
        "Time without a heartbeat of this leader after which a standby takes over, from 500ms to 10s. Default: 3s.",
      ),
    replicas: z
      .union([z.int(), z.string()], { error: replicasSentence })
      .refine((replicas) => replicasChoices.has(String(replicas)), replicasSentence)
      .optional()
      .describe(
        "Number of servers that store each new segment of the journal, from 1 to 5. Default: as for the newest segment, or 1.",
      ),
    retain: z
      .string(retainSentence)
      .refine((said) => retentionIn(said) !== undefined, retainSentence)
      .optional()
      .describe(
        "Part of the journal that is kept for reading: a duration, a size, or both; the smaller applies. Default: 7d,7GiB.",
      ),
    tokenKeyFile: path("the key of the attempts' tokens", "./token.key").describe(
      "Path, relative to this file, of the key of the attempts' tokens, which up uses. Default: tokens follow from the journal.",
    ),
    declarationsFile: path("a file of declarations", "./declarations.json").describe(
      "Path, relative to this file, of the groups of agents and the projects' users that up declares to the leader; `waggle auth` makes it. Default: none.",
    ),
    operatorConfig: path("an operator's waggle.config.json", "./operator/waggle.config.json").describe(
      "Path, relative to this file, of the waggle.config.json of an operator's credential, over which dashboard and up perform changes from the page. Default: none.",
    ),
    logLevel: z
      .enum(logLevels, `must be one of ${logLevels.join(", ")}`)
      .optional()
      .describe("Lowest level that is logged. Default: info for up and agent, silent for other verbs."),
  })
  .meta({ title: "waggle.config.json", description: "Settings of the waggle command in this folder." });
export type Config = z.infer<typeof configSchema>;
