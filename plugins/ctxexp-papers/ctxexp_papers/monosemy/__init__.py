"""Senses and contexts: does a word vary by how many senses it has, or by how varied its contexts are?"""
