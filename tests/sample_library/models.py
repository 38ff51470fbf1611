"""Books and their chapters: all that a developer writes for two new repositories."""

from django.db import models

from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity


class Book(AggregateRoot):
    code = models.CharField(max_length=16, unique=True)
    title = MultilanguageField(max_length=100)
    pages = models.IntegerField(null=True, blank=True)
    publisher = ReferenceField("domain.Company", null=True, blank=True)


class Chapter(Entity):
    book = ReferenceField(Book, owner=True)
    heading = models.CharField(max_length=100)


@repositories.register
class Books(Repository[Book]):
    name = "Library.Books"
    code_member, name_member, display_format = "code", "title", "{Code}: {Title:T}"
    search_members = ("code", "title")
    children = (Child("Chapters", "Library.Chapters"),)


@repositories.register
class Chapters(Repository[Chapter]):
    name = "Library.Chapters"
