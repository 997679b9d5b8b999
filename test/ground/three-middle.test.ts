// Three servers of the second version that is found.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(1);
