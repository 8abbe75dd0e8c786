"""Workers that seem lost to other machines."""

from datetime import UTC, datetime, timedelta

from optuna.storages._rdb.models import TrialHeartbeatModel
from sqlalchemy import update

from eamp.experiments.store import Store


def silence(store: Store, trial_id: int) -> None:
    """Set the last heartbeat of a trial's worker to an hour ago, instead of waiting."""
    then = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    heartbeat = update(TrialHeartbeatModel).where(TrialHeartbeatModel.trial_id == trial_id)
    with store.storage.engine.begin() as connection:
        changed = connection.execute(heartbeat.values(heartbeat=then))
    assert changed.rowcount == 1
