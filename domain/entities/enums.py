"""Enum types that more than one namespace uses."""

from __future__ import annotations

from foundation.enums import EnumType

PARENT_DOCUMENT_RELATIONSHIP_TYPE = EnumType(
    "General.Documents.ParentDocumentRelationshipType", {"Subtask": 0, "NextTask": 1, "IndependentTask": 2}
)

DOCUMENT_COMPLETION = EnumType(
    "General.Documents.DocumentCompletion", {"OnlyDocument": 0, "WithAllChildren": 1, "WithReleasedChildren": 2}
)

VOID_TYPE = EnumType(
    "General.Documents.DocumentsRepositoryBase.VoidType",
    {"VoidDocument": 0, "VoidWithSubDocuments": 1, "VoidWithReleasedSubDocuments": 2},
)

PRIORITY = EnumType("General.Priority", {"Lowest": 1, "Low": 2, "Medium": 3, "High": 4, "Highest": 5})

DELIVERY_TERMS = EnumType(
    "Regulatory.Intrastat.DeliveryTerms",
    {
        "ExWorks": 0,
        "FrancoCarrier": 1,
        "FreeAlongsideShip": 2,
        "FreeOnBoard": 3,
        "CostAndFreightCF": 4,
        "CostInsuranceAndFreight": 5,
        "CarriagePaidTo": 6,
        "CarriageAndInsurancePaidTo": 7,
        "DeliveredAtPlace": 8,
        "DeliveredAtTerminal": 9,
        "DeliveredDutyPaid": 10,
        "DeliveredAtPlaceUnloaded": 11,
    },
)

TRANSACTION_NATURE = EnumType(
    "Regulatory.Intrastat.TransactionNature",
    {
        "OutrightPurchaseOrSale": 0,
        "SupplyForSale": 1,
        "BarterTrade": 2,
        "FinancialLeasing": 3,
        "OtherTransactions": 4,
        "ReturnStokilizing": 5,
        "ReplacementForReturnedGoods": 6,
        "ReplacementOfGoodsNotBeingReturned": 7,
        "ReturnOrExchangeOfOtherGoods": 8,
        "SpecificTransactions": 9,
        "OperationsOnJointProjects": 10,
        "TransactionsOfConstructionMaterialsAndEquipment": 11,
        "OtherTransactionsLeasing": 12,
        "OtherTransactionsOther": 13,
        "DealsThatIncludePropertyTransfersWithoutFinancialCompensationOrCompensationInKind": 14,
        "GoodsThatAreExpectedToBeReturnedToSender": 15,
        "GoodsThatAreNotExpectedToBeReturnedToSender": 16,
        "GoodsThatAreReturnedToSender": 17,
        "GoodsThatAreNotReturnedToSender": 18,
    },
)

TRANSPORT_MODE = EnumType(
    "Regulatory.Intrastat.TransportMode",
    {
        "Shipping": 0,
        "RailwayTransport": 1,
        "RoadTransport": 2,
        "AirTransport": 3,
        "Mail": 4,
        "FixedTransportInstallations": 5,
        "RiverTransport": 6,
        "SelfPropelled": 7,
    },
)
