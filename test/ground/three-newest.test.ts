// Three servers of the third version that is found.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(2);
