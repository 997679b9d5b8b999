// Three servers of the first installed version that keeps replicas.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(0);
