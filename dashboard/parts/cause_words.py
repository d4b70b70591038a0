"""The words and symbols for causes and confidences. Every page takes them from here."""

from leases.domain.incident import Cause, Confidence, Source

CAUSE_WORDS = {cause: cause.replace("_", " ") for cause in Cause} | {
    Cause.OOM_KILLED: "OOM killed",
    Cause.API_OUTAGE: "API outage",
    Cause.API_SLOW: "API slow",
    Cause.UNKNOWN: "not known",
}
CAUSE_MEANINGS = {
    Cause.GRACEFUL_STOP: "The holder was told to stop and released its Lease itself.",
    Cause.ROLLOUT: "A Pod of another ReplicaSet or revision took the place of the holder's Pod.",
    Cause.RESTART_IN_PLACE: "The holder's process started again in the same Pod.",
    Cause.CRASH: "The holder's process ended without releasing its Lease.",
    Cause.CRASH_LOOP: "The holder's container ends again and again; the kubelet waits ever longer "
    "before it starts it again.",
    Cause.OOM_KILLED: "The holder used more memory than it may, and was killed.",
    Cause.EVICTED: "The holder's Pod was evicted.",
    Cause.NODE_DOWN: "The node of the holder stopped.",
    Cause.DRAIN: "The node of the holder was drained.",
    Cause.API_OUTAGE: "The API server took no writes.",
    Cause.API_SLOW: "The API server answered too slowly for renewals to arrive in time.",
    Cause.STARVED: "The holder renewed ever later until it lost its Lease.",
    Cause.PARTITION: "The holder was cut off, came back, and still took itself for the holder.",
    Cause.BY_HAND: "A person or a tool wrote the Lease.",
    Cause.DELETED: "The Lease was deleted.",
    Cause.SCALED_DOWN: "The holder's workload was scaled down, and nobody was left to take over.",
    Cause.CLOCK_SKEW: "A clock was wrong by more than the Lease bears.",
    Cause.PREFERRED_HOLDER: "Coordinated election passed the Lease to the holder it prefers.",
    Cause.FLAPPING: "Each holder lost the Lease soon after taking it.",
    Cause.UNWATCHED: "It happened while nobody watched, and nothing of that time tells why.",
    Cause.UNKNOWN: "No rule explains it.",
}
CAUSE_ICONS = {
    Cause.GRACEFUL_STOP: "i-stop",
    Cause.ROLLOUT: "i-swap",
    Cause.RESTART_IN_PLACE: "i-restart",
    Cause.CRASH: "i-x",
    Cause.CRASH_LOOP: "i-restart",
    Cause.OOM_KILLED: "i-bolt",
    Cause.EVICTED: "i-logout",
    Cause.NODE_DOWN: "i-node",
    Cause.DRAIN: "i-release",
    Cause.API_OUTAGE: "i-unplug",
    Cause.API_SLOW: "i-unplug",
    Cause.STARVED: "i-clock",
    Cause.PARTITION: "i-blind",
    Cause.BY_HAND: "i-user",
    Cause.DELETED: "i-trash",
    Cause.SCALED_DOWN: "i-minus",
    Cause.CLOCK_SKEW: "i-clock",
    Cause.PREFERRED_HOLDER: "i-crown",
    Cause.FLAPPING: "i-flap",
    Cause.UNWATCHED: "i-blind",
    Cause.UNKNOWN: "st-unknown",
}
CONFIDENCE_MEANINGS = {
    Confidence.CERTAIN: "The Lease's own writer, Pods, Nodes or Events name the cause.",
    Confidence.LIKELY: "Times and hosts fit one cause only, but nothing confirms it.",
    Confidence.POSSIBLE: "It fits; other causes fit as well.",
}
CONFIDENCE_BARS = {Confidence.CERTAIN: 3, Confidence.LIKELY: 2, Confidence.POSSIBLE: 1}
SOURCE_WORDS = {source: source.capitalize() for source in Source}
