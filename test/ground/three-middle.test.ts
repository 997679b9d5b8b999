// Three servers of the second installed version.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(1);
