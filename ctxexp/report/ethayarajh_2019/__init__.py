"""Ethayarajh (EMNLP 2019), How Contextual are Contextualized Word Representations?"""
