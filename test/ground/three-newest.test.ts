// Three servers of the third installed version.

import { describeThreeServers } from "./three-servers.ts";

describeThreeServers(2);
