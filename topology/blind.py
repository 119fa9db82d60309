"""
Why nobody could look at a thing, as reasons of its condition: a fixed set.

They come without a rule of the catalogue, from whoever tried to look. `NOT_OBSERVED` is the one for
all that has no name of its own.
"""

NOT_OBSERVED = "NotObserved"
NO_ANSWER = "NoAnswer"
NOT_TRUSTED = "NotTrusted"
NOT_AN_API_SERVER = "NotAnApiServer"
TOO_MUCH = "TooMuch"
NOT_LET_IN = "NotLetIn"
NOT_ALLOWED = "NotAllowed"
OTHER_VERSION = "OtherVersion"

REASONS = frozenset(
    {
        NOT_OBSERVED,
        NO_ANSWER,
        NOT_TRUSTED,
        NOT_AN_API_SERVER,
        TOO_MUCH,
        NOT_LET_IN,
        NOT_ALLOWED,
        OTHER_VERSION,
    }
)
