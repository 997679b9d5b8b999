// Three servers of the second installed version that keeps replicas.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(1);
