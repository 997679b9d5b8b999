// Three servers of the oldest version that is found.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(0);
