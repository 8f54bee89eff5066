# Compiled like decision.rego, with -e other/name: a policy that does not answer where it is asked.
package other

import rego.v1

name := "allow"
