"""The border to chat models: replies of any provider, whole or streamed, become regular messages here."""
