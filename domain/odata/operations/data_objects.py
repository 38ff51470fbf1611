"""Operations about extensible data objects, which hold platform data about entities (spec 14.6)."""

from __future__ import annotations

from domain.dataset.checks import access
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.registry import repositories
from domain.odata.operations.catalogue import EVERY_ENTITY, Operation, OperationCall, Parameter, Result, operations

_OBJECTS = "Systems.Core.ExtensibleDataObjects"


@operations.register
class GetOrCreateExtensibleDataObject(Operation):
    """The extensible data object of the entity; if there is none, one is created and saved at once."""

    name = "GetOrCreateExtensibleDataObject"
    bound_to = EVERY_ENTITY
    is_function = True
    # The function may create an entity.
    scope = "update"
    returns = "Erp.Systems_Core_ExtensibleDataObject"

    def run(self, call: OperationCall) -> Result:
        """The data object. Raises Forbidden unless the caller may read, and to create one, create data objects."""
        entity, objects = call.bound, repositories[_OBJECTS]
        access.require(call.context, objects, "read")
        # Saved at once, even within a Domain transaction, unless the entity itself is not stored yet.
        apart = call.transaction_id is not None and not entity.is_new
        dataset = Dataset(call.context) if apart else call.dataset
        dataset.lock_value(objects, f"EntityItemId={entity.id}")
        known = dataset.find_one(objects, entity_item_id=entity.id)
        if known is None:
            access.require(call.context, objects, "create")
            known = _create(dataset, entity)
            if apart:
                dataset.commit()
        return Result(record=known)


def _create(dataset: Dataset, entity: Record) -> Record:
    user_id, now = dataset.context.user_id or None, dataset.now()
    values = {
        "EntityType": entity.repository.entity_name,
        "EntityItemId": entity.id,
        "DisplayName": entity.describe()[:128],
        "CreationTimeUtc": now,
        "LastUpdateTimeUtc": now,
        "CreationUser": user_id,
        "LastUpdateUser": user_id,
    }
    return dataset.create(_OBJECTS, values, by_client=True)


@operations.register
class ChangeFolder(Operation):
    """Put a data object into a folder."""

    name = "ChangeFolder"
    bound_to = _OBJECTS
    scope = "update"
    parameters = (Parameter("folder", "Erp.General_Files_Folder"),)

    def run(self, call: OperationCall) -> Result:
        """204."""
        data_object = call.bound
        if data_object.folder_id != call.arguments["folder"]:
            data_object.folder = call.arguments["folder"]
            data_object.last_update_time_utc = call.dataset.now()
            data_object.last_update_user = call.context.user_id or None
        return Result(no_content=True)
