// Three servers of the oldest installed version.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(0);
