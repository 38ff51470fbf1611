"""An operation of the API."""

from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations


@operations.register
class Measure(Operation):
    """Store the sides of a parcel and raise MEASURED."""

    name = "Measure"
    bound_to = "Sample.Parcels"
    parameters = (Parameter("width", "Edm.Int32"), Parameter("height", "Edm.Int32"))
    scope = "update"

    def run(self, call: OperationCall) -> Result:
        """The request commits."""
        parcel = call.record
        assert parcel is not None
        parcel.width, parcel.height = call.arguments["width"], call.arguments["height"]
        call.dataset.raise_event(parcel, "MEASURED")
        return Result(no_content=True)
