"""Settings as people write them, parsed once into frozen values: a file, then the environment, then flags (O-2).

`keys` is the one table of all that can be set: the file, the environment, `headway config show` and the reference
page all go by it. Each way of setting something is read into a layer by its own file (`files`, `environment`,
`flags`), `building` puts the layers together, `loading` finds the file and is what a command calls. Only `loading`
and `places` look at the disk; a library's `Headway()` reads the environment alone. The room may import the model
and nothing else. If it is wrong, a node obeys limits that nobody set, or a typing error goes unheard.
"""

from headway.config.checking import MAX_WIDTH, check_settings, lane_settings
from headway.config.environment import settings_from
from headway.config.keys import KEYS, NAMED, Key
from headway.config.lanes import lane_warnings
from headway.config.loading import Config, load
from headway.config.problems import ConfigRefused, UnknownSetting
from headway.config.secrets import without_password
from headway.config.showing import Shown, shown

__all__ = [
    "KEYS",
    "MAX_WIDTH",
    "NAMED",
    "Config",
    "ConfigRefused",
    "Key",
    "Shown",
    "UnknownSetting",
    "check_settings",
    "lane_settings",
    "lane_warnings",
    "load",
    "settings_from",
    "shown",
    "without_password",
]
