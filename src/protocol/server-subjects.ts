// Subjects of the NATS server itself that Waggle uses: the JetStream API, and the discovery of services. Not here: the
// subjects of a swarm (subjects.ts).

/** Storage and limits of the account. */
export const accountLimits = "$JS.API.INFO";
/** Names of the account's streams. */
export const streamNames = "$JS.API.STREAM.NAMES";

export type StreamVerb = "INFO" | "CREATE" | "DELETE" | "MSG.GET";
export type ConsumerVerb = "CREATE" | "DELETE" | "MSG.NEXT";

/** @param stream `*` in a permission: every stream of the account */
export function streamRequest(verb: StreamVerb, stream: string): string {
  return `$JS.API.STREAM.${verb}.${stream}`;
}

/** @param stream and `consumer`: `*` in a permission */
export function consumerRequest(verb: ConsumerVerb, stream: string, consumer: string): string {
  return `$JS.API.CONSUMER.${verb}.${stream}.${consumer}`;
}

/** First token of the subjects on which services are found. */
export const DISCOVERY_PREFIX = "$SRV";
/** The question for the endpoints of a service, which every instance answers. */
export function serviceQuestion(service: string): string {
  return `${DISCOVERY_PREFIX}.INFO.${service}`;
}
/** All questions of NATS tools for services. */
export const discoveryPattern = `${DISCOVERY_PREFIX}.>`;
